// SPDX-License-Identifier: BSD-2-Clause
// The C++ library's ways to wait, which stand on the calls for threads. Two runs that print the same behaved alike.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex mutex;
static std::condition_variable changed;
static long turn, sum;

extern "C" __attribute__((noipa)) void progress()
{
	__asm__ volatile("" ::: "memory");
}

static void work(unsigned long n)
{
	for (unsigned long i = n; i > 0; i--)
		__asm__ volatile("" : "+r"(i));
}

static void take_turns(int who)
{
	for (int i = 0; i < 200; i++) {
		std::unique_lock lock(mutex);
		changed.wait(lock, [&] { return turn % 3 == who; });
		work(20000);
		sum += who;
		turn++;
		progress();
		lock.unlock();
		changed.notify_all();
	}
}

static int thrown()
{
	auto f = std::async(std::launch::async, []() -> int {
		std::scoped_lock lock(mutex);
		throw std::runtime_error("thrown");
	});

	try {
		return f.get();
	} catch (const std::runtime_error &e) {
		std::printf("%s\n", e.what());
		return -1;
	}
}

int main()
{
	std::vector<std::jthread> threads;
	std::timed_mutex timed;
	std::recursive_mutex recursive;
	std::shared_mutex shared;
	std::counting_semaphore<> semaphore(0);

	for (int i = 0; i < 3; i++)
		threads.emplace_back(take_turns, i);
	threads.clear();
	std::printf("turn %ld sum %ld\n", turn, sum);
	std::printf("future %d\n", thrown());
	std::printf("mutex free %d\n", mutex.try_lock());
	mutex.unlock();
	{
		std::unique_lock lock(timed);
		std::printf("timed %d\n", std::async(std::launch::async, [&] { return timed.try_lock_for(1ms); }).get());
	}
	{
		std::scoped_lock a(recursive), b(recursive);
		std::shared_lock c(shared);
		std::printf("shared %d\n", shared.try_lock_shared());
		shared.unlock_shared();
	}
	{
		std::unique_lock lock(mutex);
		std::printf("no_timeout %d\n", changed.wait_for(lock, 1ms) == std::cv_status::no_timeout);
	}
	std::jthread poster([&] { semaphore.release(2); });
	semaphore.acquire();
	semaphore.acquire();
	std::printf("semaphore %d\n", semaphore.try_acquire_for(1ms));
	return 0;
}
