// SPDX-License-Identifier: BSD-2-Clause
// Two stages with a short queue between them, in C++20, waiting by std::atomic: decoding takes 20 units of work for an item, filtering 12.
// usage: stages SECONDS
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

constexpr std::uint64_t unit = 12'000;

[[gnu::noinline]] std::uint64_t decode(std::uint64_t x)
{
	for (auto i = 20 * unit; i > 0; i--) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } // LINE:decode
	return x;
}

[[gnu::noinline]] std::uint64_t filter(std::uint64_t x)
{
	for (auto i = 12 * unit; i > 0; i--) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; } // LINE:filter
	return x;
}

namespace stages {
// The progress point: an item is done.
[[gnu::noinline]] void progress(std::uint64_t x)
{
	asm volatile("" : : "r"(x) : "memory");
}
} // namespace stages

// One producer, one consumer. Who finds it full or empty waits for the other's counter to change.
class queue {
	std::array<std::uint64_t, 4> items;
	std::atomic<std::uint32_t> written = 0, taken = 0;

public:
	void put(std::uint64_t x)
	{
		auto n = written.load(std::memory_order_relaxed);

		for (auto t = taken.load(); n - t == items.size(); t = taken.load())
			taken.wait(t);
		items[n % items.size()] = x;
		written.store(n + 1);
		written.notify_one();
	}

	std::uint64_t take()
	{
		auto n = taken.load(std::memory_order_relaxed);

		for (auto w = written.load(); w == n; w = written.load())
			written.wait(w);
		auto x = items[n % items.size()];
		taken.store(n + 1);
		taken.notify_one();
		return x;
	}
};

int main(int argc, char **argv)
{
	auto length = std::chrono::duration<double>(argc > 1 ? std::atof(argv[1]) : 10);
	std::barrier start(2);
	queue q;

	std::jthread decoder([&](std::stop_token stop) {
		start.arrive_and_wait();
		for (std::uint64_t x = 1; !stop.stop_requested();)
			q.put(x = decode(x));
		q.put(0);
	});
	start.arrive_and_wait();
	for (auto end = std::chrono::steady_clock::now() + length;;) {
		auto x = q.take();

		if (!x)
			break;
		stages::progress(filter(x));
		if (std::chrono::steady_clock::now() > end)
			decoder.request_stop();
	}
}
