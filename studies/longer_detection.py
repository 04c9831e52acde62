"""Train the quickstart's detector three times as long; write records, tables and figures.

python -m studies.longer_detection --out docs/longer_detection --work-dir work_dirs/longer_detection
"""

from studies.experiments.command_line import run_experiment
from studies.experiments.longer_detection import all_tables, draw_figures, follow, prepare

if __name__ == '__main__':
    run_experiment(__doc__, prepare, all_tables, draw_figures, follow=follow)
