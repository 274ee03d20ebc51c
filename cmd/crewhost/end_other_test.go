//go:build !linux

package main

import "os"

func end(status int) { os.Exit(status) }
