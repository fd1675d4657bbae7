package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

func pin(certificate *x509.Certificate) string {
	digest := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(digest[:])
}

func roots(file string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	text, err := os.ReadFile(file)
	if err == nil && !pool.AppendCertsFromPEM(text) {
		err = errors.New("no certificate in " + file)
	}
	return pool, err
}

// client: each requester asks again as soon as it is answered.
func client(arguments []string) (figures, error) {
	requesters, seconds := int(number(arguments, 3)), number(arguments, 4)
	url, wanted := arguments[0], arguments[2]
	pool, err := roots(arguments[1])
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		MaxIdleConnsPerHost: requesters, MaxConnsPerHost: requesters, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, VerifyConnection: func(state tls.ConnectionState) error {
			if found := pin(state.PeerCertificates[0]); found != wanted {
				return errors.New("another key: " + found)
			}
			return nil
		}},
	}
	get := func() (time.Duration, error) {
		start := time.Now()
		answer, err := (&http.Client{Transport: transport}).Get(url)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		if _, err = io.ReadAll(answer.Body); err == nil && answer.StatusCode != 200 {
			err = errors.New(answer.Status)
		}
		return time.Since(start), err
	}
	if _, err = get(); err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	var lock sync.Mutex
	var taken []time.Duration
	start, cpu := time.Now(), cpuSeconds()
	for range requesters {
		group.Go(func() {
			var mine []time.Duration
			var failure error
			for ok := true; ok; ok = failure == nil && time.Since(start).Seconds() < seconds {
				var one time.Duration
				one, failure = get()
				mine = append(mine, one)
			}
			lock.Lock()
			defer lock.Unlock()
			taken, err = append(taken, mine...), errors.Join(err, failure)
		})
	}
	group.Wait()
	elapsed := time.Since(start).Seconds()
	slices.Sort(taken)
	count := float64(len(taken))
	return figures{
		"requests_per_s": count / elapsed, "p50_us": float64(taken[len(taken)/2].Microseconds()),
		"p99_us":          float64(taken[len(taken)*99/100].Microseconds()),
		"cpu_ms_per_1000": (cpuSeconds() - cpu) / count * 1e6, "peak_rss_mb": peakMegabytes(),
	}, err
}

// scan: so many handshakes, 64 at a time.
func scan(arguments []string) (figures, error) {
	count := int(number(arguments, 3))
	address, domain := arguments[0], arguments[1]
	pool, err := roots(arguments[2])
	if err != nil {
		return nil, err
	}
	jobs := make(chan int, count)
	for index := range count {
		jobs <- index
	}
	close(jobs)
	var group sync.WaitGroup
	var lock sync.Mutex
	start := time.Now()
	for range 64 {
		group.Go(func() {
			for index := range jobs {
				connection, failure := tls.DialWithDialer(
					&net.Dialer{Timeout: 30 * time.Second}, "tcp", address,
					&tls.Config{ServerName: fmt.Sprintf("h%d.%s", index, domain), RootCAs: pool})
				if failure != nil {
					lock.Lock()
					err = errors.Join(err, failure)
					lock.Unlock()
					return
				}
				for _, certificate := range connection.ConnectionState().PeerCertificates {
					_ = pin(certificate)
				}
				_ = connection.Close()
			}
		})
	}
	group.Wait()
	return figures{
		"handshakes_per_s": float64(count) / time.Since(start).Seconds(),
		"cpu_s_per_1000":   cpuSeconds() / float64(count) * 1000, "peak_rss_mb": peakMegabytes(),
	}, err
}
