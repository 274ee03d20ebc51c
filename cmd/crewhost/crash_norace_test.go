//go:build unix && !race

package main

// killedTasks are the tasks of a run that is killed at every line.
const killedTasks = 10
