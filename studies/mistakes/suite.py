"""All mistakes of the suite."""

from studies.mistakes.annotations import annotation_cases
from studies.mistakes.case import Case
from studies.mistakes.drawn import drawn_cases
from studies.mistakes.images import image_cases
from studies.mistakes.labels import label_cases
from studies.mistakes.places import place_cases
from studies.mistakes.settings import setting_cases
from studies.mistakes.weights import weight_cases


def all_cases() -> dict[str, list[Case]]:
    """Return the mistakes by the title of their table, each once."""
    parts = {
        'Settings': setting_cases(),
        'Settings, drawn': drawn_cases(),
        'Annotations': annotation_cases(),
        'Images': image_cases(),
        'Labels': label_cases(),
        'Weights': weight_cases(),
        'Files and folders': place_cases(),
    }
    seen: set[str] = set()
    # What is drawn may be in another part, too.
    return {
        title: [case for case in cases if not (case.name in seen or seen.add(case.name))]
        for title, cases in parts.items()
    }
