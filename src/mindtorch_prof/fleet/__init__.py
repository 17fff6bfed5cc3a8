"""Many ranks of one job: trace files in, a comparison of the ranks out."""
