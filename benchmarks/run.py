"""`make bench`: all ratios of this project, from one run. `--quick` only tries that everything works."""

import argparse
import platform

import models
import preprocessing
import torch


def main() -> None:
    """Run and print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes; the figures mean nothing")
    parser.add_argument("--only", choices=["models", "preprocessing", "distances", "memory"], help="one part")
    args = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, torch {torch.__version__}, {torch.get_num_threads()} thread(s)"
    )
    size = "_tiny" if args.quick else "_iwslt_de_en"
    options = {"encoder_layers": 2, "decoder_layers": 2} if args.quick else {}
    if args.only in (None, "models"):
        models.training(size, options, *((4, 8, 1) if args.quick else (48, 25, 6)))
        models.generation(size, options, *((2, 4, 1) if args.quick else (16, 20, 5)))
    if args.only in (None, "preprocessing"):
        preprocessing.arrays(200 if args.quick else 20000, 1 if args.quick else 5)
    if args.only in (None, "distances"):
        preprocessing.distances(1 if args.quick else 5)
    if args.only in (None, "memory"):
        models.compare_memory(size)


if __name__ == "__main__":
    main()
