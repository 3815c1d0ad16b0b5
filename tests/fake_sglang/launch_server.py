"""The door by which commands call the fake server: `python tests/fake_sglang/launch_server.py --model-path …`.

The end of its path is that of SGLang's own module, so that it is recognised as the command of a server.
"""

from server import main

if __name__ == "__main__":
    main()
