"""`make bench`: all ratios of this project, from one run. `--quick` only tries that everything works."""

import argparse
import platform

import attention
import blackout
import distances
import latent_trees
import marginals
import models
import preprocessing
import torch


def main() -> None:
    """Run and print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes; the figures mean nothing")
    parts = [
        "models",
        "recurrent",
        "attention",
        "graphs",
        "marginals",
        "preprocessing",
        "distances",
        "blackout",
        "latent-trees",
        "memory",
    ]
    parser.add_argument("--only", choices=[*parts, "memory"], help="one part")
    parser.add_argument("--paper-size", action="store_true", help="attention: also the size of the paper, many minutes")
    args = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, torch {torch.__version__}, {torch.get_num_threads()} thread(s)"
    )
    size = "_tiny" if args.quick else "_iwslt_de_en"
    options = {"encoder_layers": 2, "decoder_layers": 2} if args.quick else {}
    if args.only in (None, "models"):
        systems = models.transformers(size, **options)
        models.training(systems, *((4, 8, 1) if args.quick else (48, 25, 6)), ">= 0.97")
        models.generation(systems, *((2, 4, 4, 1) if args.quick else (16, 20, 4, 5)), ">= 0.97")
    if args.only in (None, "recurrent"):
        for width in (32,) if args.quick else (256, 1024):
            systems = models.recurrent(width)
            print(f"\n== recurrent models, embeddings and states of {width}")
            target = ">= 1.0 (nmt_lstm), 0.8 (sa_nmt_shared)"
            sizes = {32: (4, 8, 1), 256: (64, 20, 5), 1024: (32, 25, 3)}[width]
            models.training(systems, *sizes, target)
            models.generation(systems, *((2, 4, 5, 1) if args.quick else (16, 20, 5, 3)), target)
    if args.only in (None, "attention"):
        attention.run(args.quick, args.paper_size)
    if args.only in (None, "graphs"):
        for size in (32,) if args.quick else (128, 512):
            systems = models.graphs(size)
            print(f"\n== latent graph parsing, embeddings and states of {size}")
            models.training(systems, *((4, 8, 1) if args.quick else (128, 12, 2)), None)
            for beam in (12,) if args.quick else (12, 50):
                models.generation(systems, *((2, 4) if args.quick else (16, 12)), beam, 1 if args.quick else 3)
    if args.only in (None, "marginals"):
        marginals.run(quick=args.quick)
    if args.only in (None, "preprocessing"):
        preprocessing.arrays(200 if args.quick else 20000, 1 if args.quick else 5)
    if args.only in (None, "distances"):
        distances.computing(1 if args.quick else 5)
        distances.fetching(*((20, 4, 1) if args.quick else (1000, 64, 11)))
    if args.only in (None, "blackout"):
        blackout.run(args.quick)
    if args.only in (None, "latent-trees"):
        latent_trees.run(args.quick)
    if args.only in (None, "memory"):
        models.compare_memory(size)


if __name__ == "__main__":
    main()
