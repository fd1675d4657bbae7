package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// unchanged asks for what it has, over raw sockets, and reads the head of each 304. wrk cannot: it waits for the
// body that Content-Length speaks of, which a 304 may carry and never has (RFC 9110, section 8.6).
func unchanged(arguments []string) (figures, error) {
	connections, seconds := int(number(arguments, 3)), number(arguments, 4)
	address, path, etag := arguments[0], arguments[1], arguments[2]
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nIf-None-Match: %s\r\n\r\n", path, address, etag)
	ask := func(connection net.Conn, answers *bufio.Reader) error {
		if _, err := connection.Write(request); err != nil {
			return err
		}
		for first := true; ; first = false {
			line, err := answers.ReadSlice('\n')
			if err != nil {
				return err
			}
			if first && !strings.HasPrefix(string(line), "HTTP/1.1 304") {
				return errors.New(string(line))
			}
			if len(line) == 2 {
				return nil
			}
		}
	}
	var group sync.WaitGroup
	var lock sync.Mutex
	var taken []time.Duration
	var failures error
	start := time.Now()
	for range connections {
		group.Go(func() {
			var mine []time.Duration
			connection, err := net.Dial("tcp", address)
			if err == nil {
				defer connection.Close()
				for answers := bufio.NewReader(connection); err == nil && time.Since(start).Seconds() < seconds; {
					before := time.Now()
					err = ask(connection, answers)
					mine = append(mine, time.Since(before))
				}
			}
			lock.Lock()
			defer lock.Unlock()
			taken, failures = append(taken, mine...), errors.Join(failures, err)
		})
	}
	group.Wait()
	if len(taken) == 0 {
		return nil, errors.Join(errors.New("no answer"), failures)
	}
	elapsed := time.Since(start).Seconds()
	slices.Sort(taken)
	return figures{
		"requests_per_s": float64(len(taken)) / elapsed,
		"p99_us":         float64(taken[len(taken)*99/100].Microseconds()),
	}, failures
}
