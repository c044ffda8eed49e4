#!/usr/bin/env bash
# Lays out Multi30k task 1 English-German (Elliott et al. 2016) in DIR: train, val and test_2016_flickr, raw and
# lower-cased tokenised. For research and education; see the data's own licence.
# Usage: tools/get-multi30k.sh DIR [SOURCE]
#   SOURCE  a folder that holds the files (flat, or a clone of the repository); without one the public repository
#           https://github.com/multi30k/dataset is cloned.
set -euo pipefail

fail() { echo "get-multi30k: $*" >&2; exit "${status:-3}"; }
[ $# -ge 1 ] && [ $# -le 2 ] || status=2 fail "usage: tools/get-multi30k.sh DIR [SOURCE]"
dir=$1
source=${2:-}

if [ -z "$source" ]; then
  clone=$(mktemp -d)
  trap 'rm -rf "$clone"' EXIT
  git clone --quiet --depth 1 https://github.com/multi30k/dataset "$clone" ||
    fail "cannot clone https://github.com/multi30k/dataset; give a local folder: tools/get-multi30k.sh DIR SOURCE"
  source=$clone
fi
[ -d "$source" ] || fail "$source: no such folder"

# The file of a split: with our name in a flat folder, or where the repository has it.
find_file() {  # SPLIT KIND LANGUAGE
  local split=$1 kind=$2 language=$3 candidate
  for candidate in "$source/$split.$kind.$language" "$source/data/task1/$kind/$split.$language" \
                   "$source/data/task1/tok/$split.$kind.$language"; do
    for candidate in "$candidate.gz" "$candidate"; do
      [ -f "$candidate" ] && { echo "$candidate"; return; }
    done
  done
  fail "no $split.$kind.$language(.gz) in $source"
}

mkdir -p "$dir"
declare -A lines=([train]=29000 [val]=1014 [test_2016_flickr]=1000)
for split in train val test_2016_flickr; do
  for kind in raw lc.norm.tok; do
    for language in en de; do
      from=$(find_file "$split" "$kind" "$language")
      to=$dir/$split.$kind.$language.gz
      if [[ $from == *.gz ]]; then cp "$from" "$to.tmp"; else gzip -nc "$from" >"$to.tmp"; fi
      count=$(gzip -dc "$to.tmp" | wc -l)
      [ "$count" -eq "${lines[$split]}" ] || fail "$from: $count lines, expected ${lines[$split]}"
      chmod u+w "$to.tmp"
      mv "$to.tmp" "$to"
    done
  done
done
echo "Multi30k is in $dir"
