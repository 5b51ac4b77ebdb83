#!/bin/sh
# A study as a Slurm array:
#
#     sh examples/slurm/sweep.sh STUDY.toml FOLDER PARTS CORES
#
# submits PARTS jobs with CORES cores each, whose results are in FOLDER.parts, and a job that
# merges them into FOLDER when all have ended. After a failure the same command computes only what
# is missing. Account, partition and time limit are those of the variables SBATCH_ACCOUNT,
# SBATCH_PARTITION and SBATCH_TIMELIMIT (sbatch(1)).
set -eu
case ${SLURM_JOB_ID:+job}${SLURM_ARRAY_TASK_ID:+-part} in
job-part)
    srun aqmlab study "$1" --shard "$SLURM_ARRAY_TASK_ID/$3" \
        --out "$2.parts/$SLURM_ARRAY_TASK_ID" --threads "$SLURM_CPUS_PER_TASK"
    ;;
job)
    aqmlab merge "$2".parts/* --out "$2"
    ;;
*)
    [ $# -eq 4 ] || { echo "usage: $0 STUDY.toml FOLDER PARTS CORES" >&2; exit 2; }
    array=$(sbatch --parsable --job-name=aqmlab --array="1-$3" --cpus-per-task="$4" "$0" "$@")
    sbatch --job-name=aqmlab-merge --dependency="afterok:${array%%;*}" "$0" "$@"
    ;;
esac
