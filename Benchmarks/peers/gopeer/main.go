// What a Go user would write with the standard library, to measure beside the SDK and the registry server.
//
//	gopeer client URL ROOT.pem PIN REQUESTERS SECONDS      pinned requests over net/http
//	gopeer scan ADDRESS DOMAIN ROOT.pem ENDPOINTS          TLS handshakes, each with its pins
//	gopeer unchanged ADDRESS PATH ETAG CONNECTIONS SECONDS conditional requests: a load for either server
//	gopeer canonicalize FILE SECONDS                       encoding/json, members sorted
//	gopeer list DOCUMENT PUB.pem SECONDS                   from a document's bytes to a map of pins
//	gopeer verdict HOSTS SECONDS                           one look-up in that map, with the pin compared
//
// Each prints its figures as name=value.
package main

import (
	"fmt"
	"os"
	"strconv"
)

type figures map[string]float64

var programs = map[string]func([]string) (figures, error){
	"client": client, "scan": scan, "unchanged": unchanged, "canonicalize": canonicalize, "list": list, "verdict": verdict,
}

func main() {
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "gopeer: wrong usage; main.go says how it is called")
		os.Exit(2)
	}
	found, err := programs[os.Args[1]](os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gopeer:", err)
		os.Exit(1)
	}
	for name, value := range found {
		fmt.Printf("%s=%g\n", name, value)
	}
}

// number reads an argument that the caller must have given.
func number(arguments []string, index int) float64 {
	if index < len(arguments) {
		if value, err := strconv.ParseFloat(arguments[index], 64); err == nil && value > 0 {
			return value
		}
	}
	fmt.Fprintln(os.Stderr, "gopeer: wrong usage; main.go says how it is called")
	os.Exit(2)
	return 0
}
