// SPDX-License-Identifier: BSD-2-Clause
// Library code that is in headers only, inlined into ours, and ours into ours. usage: inlined SECONDS
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

using numbers = std::vector<std::uint64_t>;
static volatile std::uint64_t sink;

static inline __attribute__((always_inline)) std::uint64_t mix(const numbers &v)
{
	return std::accumulate(v.begin(), v.end(), sink + 0, [](std::uint64_t a, std::uint64_t b) { return a * 25214903917U + b; }); // LINE:mix
}

static inline __attribute__((always_inline)) std::uint64_t deeper(const numbers &v)
{
	return mix(v) ^ 1; // LINE:deeper
}

__attribute__((noinline)) static void first(const numbers &v)
{
	sink = mix(v); // LINE:first
}

__attribute__((noinline)) static void second(const numbers &v)
{
	sink = deeper(v); // LINE:second
}

__attribute__((noinline)) static void sorting(numbers v)
{
	std::sort(v.begin(), v.end(), [](std::uint64_t a, std::uint64_t b) { return a % 1021 > b % 1021; }); // LINE:sort
	sink = sink + v.front();
}

__attribute__((noinline)) static std::size_t growing(std::size_t n)
{
	std::map<std::string, numbers> all;

	for (std::size_t i = 0; i < n; i++) {
		numbers &v = all[std::to_string(i % 16)]; // LINE:key
		v.push_back(i); // LINE:push
	}
	return all.size();
}

extern "C" __attribute__((noinline)) void progress()
{
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	using clock = std::chrono::steady_clock;
	const auto until = clock::now() + std::chrono::duration<double>(argc > 1 ? std::atof(argv[1]) : 3);
	numbers v;

	for (std::uint64_t i = 0; i < 4096; i++)
		v.push_back(i * 2654435761U % 65536); // LINE:fill
	while (clock::now() < until) {
		for (int i = 0; i < 20; i++)
			first(v);
		for (int i = 0; i < 40; i++)
			second(v);
		sorting(v);
		sink = sink + growing(500);
		progress();
	}
	return 0;
}
