package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

func cpuSeconds() float64 {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

// The most resident memory that this program ever had. Not Maxrss: that begins with what the process had that
// started it.
func peakMegabytes() float64 { return status("VmHWM:") / 1024 / 1024 }

// perCall repeats work for so many seconds of CPU time, and returns those that one call takes.
func perCall(seconds float64, work func() error) (float64, error) {
	calls, batch, start := 0, 1, cpuSeconds()
	for {
		for range batch {
			if err := work(); err != nil {
				return 0, err
			}
		}
		calls += batch
		elapsed := cpuSeconds() - start
		if elapsed >= seconds {
			return elapsed / float64(calls), nil
		}
		if elapsed < seconds/10 {
			batch *= 2
		}
	}
}

// peakOf returns the resident memory that work adds at its peak, in bytes.
func peakOf(work func() error) (float64, error) {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	before := status("VmRSS:")
	err := work()
	return max(0, status("VmHWM:")-before), err
}

func status(field string) float64 {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(text) {
		var kilobytes float64
		if bytes.HasPrefix(line, []byte(field)) {
			_, _ = fmt.Sscanf(string(line[len(field):]), "%f", &kilobytes)
			return kilobytes * 1024
		}
	}
	return 0
}
