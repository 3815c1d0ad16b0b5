"""What the servers of these tests say, written for them: sane answers, and words without sense."""

from __future__ import annotations

STORY = (
    "On a rock in the bay stood a tower that had been painted white so often that its corners were round. Its keeper, "
    "a former teacher, had come for one winter and had stayed for nineteen. Every dusk he wound the clockwork, trimmed "
    "the wick and wrote the weather into a green book. Fishermen set their watches by him. Once, in the year of the "
    "great ice, no ship came for six weeks, and he taught himself to bake with seaweed flour, which he never forgave. "
    "When the spring boat finally rounded the point, its crew found him on the stairs, reading poems to a seal. He "
    "asked for coffee, tobacco and a dictionary, in that order, and whether anyone had counted the gulls. Nobody had. "
    "So he did it himself, all summer long, and the number he arrived at is still carved above the door, just below "
    "the line that the highest tide has left there. Children who visit are told to add one for every gull they see."
)
BACKWARDS = " ".join(reversed(STORY.split()))
KNOWN = {
    "capital of France": "The capital of France is Paris.",
    "capital of Japan": "Tokyo.",
    "17 times 23": "391",
    "17 * 23": " 391\n18 * 23 = 414",
    "two plus two": "4",
    "2 + 2": " 4\n3 + 3 = 6",
    "days of the week": "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday",
    "hello in German": "Hallo! Guten Tag.",
    "Good morning": " Morgen",
    "中国": "中国的首都是北京。",
    "日本": "日本で一番高い山は富士山です。",
    "مصر": "عاصمة مصر هي القاهرة.",
    "lighthouse": STORY,
}
WEATHER = [
    "It rains today and the wind comes from the west.", "My brother has a red bicycle and a small dog.",
    "The soup was too hot, so they waited a little.", "She put the letter under the door and went home.",
    "In summer the river is low and people swim in it.", "The old clock on the wall stands still at noon.",
]  # fmt: skip
SALAD = (
    "harbour seventeen although green velocity beneath pardon twelve lemon carefully orbit granite willing sadness "
    "copper nineteen yesterday trumpet sidewalk merely oxygen balance corridor pumpkin reluctant ladder symptom"
)
MIXED = "harbour квартира 速度 although गणित lemon تفاحة orbit гранит 悲しみ velocity สวัสดี copper"
LOOP = "I cannot see the lamp from here, so I wait for the lamp. "
