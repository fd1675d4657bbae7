package main

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
)

type entry struct {
	pins    [][32]byte
	expires int64
}

// policy maps what stands behind `*.` to its pins.
type policy map[string]*entry

// canonical is encoding/json's nearest to RFC 8785: members sorted by their bytes, numbers as they came.
func canonical(data []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

func canonicalize(arguments []string) (figures, error) {
	seconds := number(arguments, 1)
	data, err := os.ReadFile(arguments[0])
	if err != nil {
		return nil, err
	}
	taken, err := perCall(seconds, func() error { _, err := canonical(data); return err })
	return figures{"mb_per_s": float64(len(data)) / taken / 1e6}, err
}

func read(document []byte, key *rsa.PublicKey) (policy, error) {
	var envelope struct {
		Payload   json.RawMessage
		Signature []byte
	}
	if err := json.Unmarshal(document, &envelope); err != nil {
		return nil, err
	}
	signed, err := canonical(envelope.Payload)
	if err != nil {
		return nil, err
	}
	digest := sha512.Sum512(signed)
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA512, digest[:], envelope.Signature); err != nil {
		return nil, err
	}
	var payload struct {
		Keys []struct {
			DomainName string
			Key        []byte
			Expire     int64
		}
	}
	if err := json.Unmarshal(envelope.Payload, &payload); err != nil {
		return nil, err
	}
	found := make(policy, len(payload.Keys))
	for _, key := range payload.Keys {
		base, isWildcard := strings.CutPrefix(strings.ToLower(key.DomainName), "*.")
		if !isWildcard || len(key.Key) != 32 {
			return nil, errors.New("an entry that is not understood: " + key.DomainName)
		}
		found[base] = &entry{[][32]byte{[32]byte(key.Key)}, key.Expire}
	}
	return found, nil
}

func list(arguments []string) (figures, error) {
	seconds := number(arguments, 2)
	document, err := os.ReadFile(arguments[0])
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(arguments[1])
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key := parsed.(*rsa.PublicKey)
	var kept policy
	peak, err := peakOf(func() error { kept, err = read(document, key); return err })
	if err != nil {
		return nil, err
	}
	taken, err := perCall(seconds, func() error { kept, err = read(document, key); return err })
	if err == nil && len(kept) == 0 {
		err = errors.New("an empty list")
	}
	return figures{
		"list_ms": taken * 1000, "peak_mb": peak / 1e6, "peak_times_document": peak / float64(len(document)),
	}, err
}

func (known policy) accepts(host string, leaf [32]byte, now int64) bool {
	_, parent, _ := strings.Cut(host, ".")
	found := known[parent]
	if found == nil || now >= found.expires {
		return false
	}
	for _, pin := range found.pins {
		if pin == leaf {
			return true
		}
	}
	return false
}

func verdict(arguments []string) (figures, error) {
	count, seconds := int(number(arguments, 0)), number(arguments, 1)
	leaf := [32]byte{1, 2, 3}
	known, hosts := make(policy, count), make([]string, count)
	for index := range count {
		base := fmt.Sprintf("host-%d.example.com", index)
		hosts[index] = "www." + base
		known[base] = &entry{[][32]byte{leaf}, 1_900_000_000}
	}
	next := 0
	taken, err := perCall(seconds, func() error {
		next = (next + 7919) % count
		if !known.accepts(hosts[next], leaf, 1_795_000_000) {
			return errors.New("refused")
		}
		return nil
	})
	return figures{"verdict_ns": taken * 1e9}, err
}
