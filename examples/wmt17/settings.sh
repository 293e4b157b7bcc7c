# Settings shared by prepare.sh, train.sh and evaluate.sh; every one can be overridden from the environment, and so can
# those of ../wmt.sh (text, GPUs) and ../common.sh. Numbers are those of Tran & Bisk (2018), Sec. 4, unless said otherwise.
: "${SOURCE:=en}" "${TARGET:=de}"   # SOURCE=de TARGET=en for the other direction: one data directory serves both
case "$SOURCE-$TARGET" in
en-de | de-en) ;;
en-ru | ru-en) # 2.1M sentences / 32 / 5,000 updates; newstest2016 is for validation
    : "${OUT:=outputs/wmt17-ru}" "${VALID_SET:=wmt16}" "${TEST_SET:=wmt17}" "${EPOCH_PARTS:=13}"
    ;;
*)
    echo "settings.sh: SOURCE=$SOURCE TARGET=$TARGET: choose en and de, or en and ru" >&2
    exit 2
    ;;
esac
: "${OUT:=outputs/wmt17}"           # everything is written below
: "${MERGES:=32000}"                # BPE merges of each language; the paper does not join them
: "${TEST_SET:=wmt16 wmt17}"        # newstest2016 (split test) and newstest2017 (split test1)
: "${BATCH_SIZE:=32}"               # sentences an update, on all GPUs together
: "${EPOCH_PARTS:=18}"              # evaluations in an epoch: 5.9M sentences / 32 / 10,000 updates
: "${BEAM:=5}" "${LENPEN:=1}"       # the paper does not say
source "$(dirname "${BASH_SOURCE[0]}")/../wmt.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../sa_nmt/training.sh"
DATA="$OUT/data-bin"
