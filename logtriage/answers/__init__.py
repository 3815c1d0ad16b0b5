"""Response bodies in, one finding out: is an answer of the server garbage, and how?"""

from logtriage.answers.bodies import Answer, read_response
from logtriage.answers.garbage import Finding, holds_data, judge

__all__ = ["Answer", "Finding", "holds_data", "judge", "read_response"]
