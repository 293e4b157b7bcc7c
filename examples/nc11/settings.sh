# Settings shared by prepare.sh, train.sh and evaluate.sh; every one can be overridden from the environment, and so can
# those of ../wmt.sh and ../common.sh. Numbers are those of Bugliarello & Okazaki (2020) for News Commentary v11.
: "${OUT:=outputs/nc11}"            # everything is written below
: "${SOURCE:=en}" "${TARGET:=de}"   # SOURCE=de TARGET=en for the other direction
: "${MERGES:=16000}"                # joint BPE merges
: "${DROPOUT:=0.3}" "${MAX_UPDATE:=20000}"
case "$SOURCE-$TARGET" in
en-de) : "${BETA2:=0.997}" "${PASCAL_HEADS:=2 0 0 0 0 0}" "${PARENT_IGNORING:=0.4}" ;;
de-en) : "${BETA2:=0.997 lisa=0.98 multitask=0.98}" "${PASCAL_HEADS:=8 0 0 0 0 0}" "${PARENT_IGNORING:=0.0}" ;;
*)
    echo "settings.sh: SOURCE=$SOURCE TARGET=$TARGET: choose en de or de en" >&2
    exit 2
    ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"
