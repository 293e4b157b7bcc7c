"""The configuration that fairseq-train makes of a command line."""

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf


def configuration(data, arch="transformer_tiny", *extra):
    """Of a data directory, an architecture and further options, with `--task syntax_translation`."""
    argv = [str(data), "--task", "syntax_translation", "-s", "en", "-t", "de", "--arch", arch, *map(str, extra)]
    parser = options.get_training_parser(default_task="syntax_translation")
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, argv))
