# Shared by the recipes, whose settings.sh source it, and by the quick runs.
set -euo pipefail
EXAMPLES="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
ROOT="$(dirname "$EXAMPLES")"
# a copy of the examples takes the plug-in that is installed
[[ -d "$ROOT/fairseq_syntax" ]] || : "${USER_DIR:=$(fairseq-syntax dir)}"
: "${USER_DIR:=$ROOT/fairseq_syntax}"
: "${SEED:=1}"
: "${DRY_RUN:=}"                    # set to print commands instead of running them
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
# glibc gives large tensors back to the system after every operation and fetches them again; on a CPU, keeping them
# saves a good part of the time (as much as half where page faults are expensive, as on virtual machines).
export MALLOC_MMAP_THRESHOLD_="${MALLOC_MMAP_THRESHOLD_:-4294967296}" MALLOC_TRIM_THRESHOLD_="${MALLOC_TRIM_THRESHOLD_:-17179869184}"
# in a log, tqdm's bars, such as subword-nmt's, speak once a minute at most
[[ -t 2 ]] || export TQDM_MININTERVAL=60 TQDM_MAXINTERVAL=60
TRANSFORMERS=(transformer pascal lisa planted tag multitask dasa_transformer)

# Say what is wrong and give up: stop MESSAGE …
stop() {
    echo "$(basename "$0")${RECIPE:+ $VERB $RECIPE}: $*" >&2
    exit 2
}

# The same with status 1, as for what may be there later: fail MESSAGE
fail() {
    echo "$(basename "$0")${RECIPE:+ $VERB $RECIPE}: $*" >&2
    exit 1
}

# The programs must be there: stop early, and say what to do.
[[ -n "$DRY_RUN" ]] || command -v fairseq-train > /dev/null ||
    fail "no fairseq-train; activate the environment first: . $ROOT/.venv/bin/activate"

# Stop unless it is one of the SYSTEMS of the recipe: check_system SYSTEM
check_system() {
    [[ -n "${1:-}" ]] || stop "give a system: ${SYSTEMS[*]}"
    [[ " ${SYSTEMS[*]} " == *" $1 "* ]] || stop "system $1: choose from ${SYSTEMS[*]}"
}

# Stop unless it is one of the SPLITS of the recipe: check_split SPLIT
check_split() {
    [[ " ${SPLITS[*]} " == *" $1 "* ]] || stop "split $1: choose from ${SPLITS[*]}"
}

# Print a command; run it unless DRY_RUN is set.
run() {
    printf '+ %s\n' "$(printf '%q ' "$@")" >&2
    [[ -n "$DRY_RUN" ]] || "$@"
}

# The same, with the output in a file, which appears when it is complete: run_to FILE COMMAND …
run_to() {
    printf '+ %s> %q\n' "$(printf '%q ' "${@:2}")" "$1" >&2
    [[ -n "$DRY_RUN" ]] || { "${@:2}" > "$1.part" && mv "$1.part" "$1"; }
}

# The same, with a file on the standard input, too: run_filter INPUT FILE COMMAND …
run_filter() {
    printf '+ %s< %q > %q\n' "$(printf '%q ' "${@:3}")" "$1" "$2" >&2
    [[ -n "$DRY_RUN" ]] || { "${@:3}" < "$1" > "$2.part" && mv "$2.part" "$2"; }
}

# System -> options of fairseq-train that make it: system_options SYSTEM SIZE HEADS IGNORING DATA
#   SIZE: of the architecture, such as iwslt_de_en;  HEADS: parent-scaled heads of each encoder layer;
#   IGNORING: --pascal-parent-ignoring;  DATA: path of the data directory
system_options() {
    local size="$2" ignoring="$4"
    local -a heads
    read -ra heads <<< "$3"
    ARCH=() SHARING=(--share-all-embeddings) CRITERION=label_smoothed_cross_entropy DATA_BIN="$5"
    case "$1" in
    transformer) ARCH=(--arch "transformer_$size") ;;
    pascal)
        ARCH=(--arch "pascal_transformer_$size" --pascal-heads "${heads[@]}" --pascal-parent-ignoring "$ignoring")
        ;;
    lisa)
        ARCH=(--arch "lisa_transformer_$size")
        CRITERION=label_smoothed_cross_entropy_with_heads
        ;;
    planted)
        ARCH=(--arch "planted_transformer_$size")
        CRITERION=label_smoothed_cross_entropy_with_planted_heads
        ;;
    tag | dasa_transformer) ARCH=(--arch "${1/#tag/tag_transformer}_$size") ;;
    multitask)
        ARCH=(--arch "transformer_$size")
        DATA_BIN="$5-multitask"
        ;;
    esac
}

# Make the corpus of the multi-task system, which reads its trees as target text (Currey & Heafield 2019), and
# binarize it: multitask_data BPE FOLDER DATA SPLIT …; TASK_SYMBOL is as in linearize --symbol
#   BPE: folder of the text in subwords;  FOLDER: for the corpus;  DATA: data directory;  SPLIT: valid, test, …
multitask_data() {
    local bpe="$1" folder="$2" data="$3" split tests=()
    shift 3
    run mkdir -p "$folder"
    run fairseq-syntax linearize --input "$bpe/train" --source-lang "$SOURCE" --target-lang "$TARGET" \
        --output "$folder/train" --symbol "${TASK_SYMBOL:-both}" --overwrite
    for split in "$@"; do
        run fairseq-syntax linearize --input "$bpe/$split" --source-lang "$SOURCE" --target-lang "$TARGET" \
            --output "$folder/$split" --translate-only --symbol "${TASK_SYMBOL:-both}" --overwrite
        [[ "$split" == valid ]] || tests+=("$folder/$split")
    done
    run rm -rf "$data"
    run fairseq-preprocess --source-lang "$SOURCE" --target-lang "$TARGET" --joined-dictionary --workers "$WORKERS" \
        --trainpref "$folder/train" --validpref "$folder/valid" \
        --testpref "$(IFS=,; echo "${tests[*]}")" --destdir "$data"
}

# Stop unless a file or folder is there: there PATH WHAT_TO_DO
there() {
    [[ -n "$DRY_RUN" || -e "$1" ]] || fail "$1 is not there: $2"
}

# Run a command unless its file is there: unless_there FILE COMMAND …
unless_there() {
    if [[ -s "$1" ]]; then
        echo "= $1 is there" >&2
    else
        "${@:2}"
    fi
}

download() { # file, URL
    run curl --fail --location --silent --show-error -o "$1.part" "$2"
    run mv "$1.part" "$1"
}

# Translations in the order of the corpus, from the output of fairseq-generate: hypotheses GENERATED FILE
hypotheses() {
    [[ -n "$DRY_RUN" ]] || sed -n 's/^H-\([0-9]*\)\t[^\t]*\t/\1\t/p' "$1" | sort -n | cut -f2 > "$2"
}

# Put translations in order and score them against tokens, hence --tokenize none: bleu_of_tokens NAME REFERENCE
#   NAME.generated: the output of fairseq-generate
bleu_of_tokens() {
    hypotheses "$1.generated" "$1.hypotheses"
    run_to "$1.bleu" sacrebleu "$2" --input "$1.hypotheses" --tokenize none --metrics bleu
    [[ -n "$DRY_RUN" ]] || cat "$1.bleu"
}

# The first of some files that is there, or stop: existing FILE …
existing() {
    local file
    for file; do
        [[ ! -f "$file" ]] || { echo "$file" && return; }
    done
    echo "missing: $1 (or ${*:2})" >&2
    return 1
}

# A file of the folder DATA, plain or .gz, or of a URL, unless it is there: fetch GOAL NAME URL
fetch() {
    local file
    if [[ -z "${DATA:-}" ]]; then
        unless_there "$1" download "$1" "$3"
    else
        file="$(existing "$DATA/$2" "$DATA/$2.gz")"
        unless_there "$1" run_to "$1" gzip -dcf "$file"
    fi
}

# Text of Multi30k (task 1, English and German) from the folder DATA or downloaded: multi30k_text FOLDER SPLIT NAME
#   FOLDER: for SPLIT.en and SPLIT.de;  NAME: of the split there
multi30k_text() {
    local url=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/tok language
    for language in en de; do
        fetch "$1/$2.$language" "$3.$language" "$url/$3.lc.norm.tok.$language"
    done
}

# Translate a split of Multi30k and score it: multi30k_evaluate TEXT SYSTEM SPLIT OPTION …
#   TEXT: folder of the references;  SYSTEM: name in files and checkpoints;  OPTIONs: batch size of fairseq-generate
multi30k_evaluate() {
    check_split "$3"
    there "$OUT/checkpoints/$2-$SEED/checkpoint_best.pt" "train it first"
    local name="$OUT/$2-$SEED.$3"
    run_to "$name.generated" \
        fairseq-generate "$DATA_BIN" --user-dir "$USER_DIR" "${DEVICE[@]}" \
        --source-lang "$SOURCE" --target-lang "$TARGET" --gen-subset "$3" \
        --path "$OUT/checkpoints/$2-$SEED/checkpoint_best.pt" --beam "$BEAM" "${@:4}" \
        --max-len-a 1.5 --max-len-b 10 --remove-bpe
    bleu_of_tokens "$name" "$1/$3.$TARGET"
}
