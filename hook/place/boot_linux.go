package place

// bootID names the running kernel.
func bootID() string { return readLine("/proc/sys/kernel/random/boot_id") }
