//go:build unix && race

package main

// killedTasks are the tasks of a run that is killed at every line. With the race
// detector in it a program takes seconds to start, and there are two for each point.
const killedTasks = 4
