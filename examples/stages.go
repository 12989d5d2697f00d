// SPDX-License-Identifier: BSD-2-Clause

// Two stages with a short queue between them, in Go: decoding takes 20 units of work for an item, filtering 12.
// usage: stages SECONDS
package main

import (
	"os"
	"strconv"
	"time"
)

const unit = 12000

//go:noinline
func decode(x uint64) uint64 {
	for i := 20 * unit; i > 0; i-- { x ^= x << 13; x ^= x >> 7; x ^= x << 17 } // LINE:decode
	return x
}

//go:noinline
func filter(x uint64) uint64 {
	for i := 12 * unit; i > 0; i-- { x ^= x << 13; x ^= x >> 7; x ^= x << 17 } // LINE:filter
	return x
}

type output struct{ last uint64 }

// The progress point: an item is done.
//
//go:noinline
func (o *output) progress(x uint64) {
	o.last = x
}

func main() {
	seconds := 10.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	queue := make(chan uint64, 4)
	go func() {
		for x := uint64(1); time.Now().Before(end); {
			x = decode(x)
			queue <- x
		}
		close(queue)
	}()
	var o output
	for x := range queue {
		o.progress(filter(x))
	}
}
