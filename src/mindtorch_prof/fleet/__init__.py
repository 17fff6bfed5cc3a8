"""Many ranks of one job: trace files in, what the ranks have in common and where they differ out."""
