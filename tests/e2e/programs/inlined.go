// SPDX-License-Identifier: BSD-2-Clause

// Functions that Go's compiler inlines into others, some of them twice, and one that copies memory, which the run time's assembly does.
// usage: inlined SECONDS; prints rounds=N
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func mix(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7 // LINE:mix
	return x ^ x<<17
}

func twice(x uint64) uint64 {
	return mix(mix(x)) // LINE:twice
}

type state struct {
	x        uint64
	rounds   int
	from, to []byte
}

// Inlined in one place of work.
func (s *state) begin() {
	s.rounds++
	s.x |= 1 // LINE:begin
}

//go:noinline
func (s *state) work() {
	s.begin()
	for i := 0; i < 40000; i++ {
		s.x = twice(s.x) // LINE:first
		s.x += mix(s.x) // LINE:second
	}
}

//go:noinline
func (s *state) move() {
	for i := 0; i < 24; i++ {
		copy(s.to, s.from) // LINE:copy
	}
}

//go:noinline
func largest[T int | float64](all ...T) (largest T) {
	for _, x := range all {
		if x > largest { // LINE:largest
			largest = x
		}
	}
	return
}

//go:noinline
func (s *state) round() {
	s.work() // LINE:work
	s.move() // LINE:move
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	s := &state{from: make([]byte, 1<<15), to: make([]byte, 1<<15)}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for time.Now().Before(end) {
		s.round()
	}
	fmt.Printf("rounds=%d, largest %d and %.0f\n", s.rounds, largest(2, 3), largest(2.0, 3.0))
}
