package place

import "syscall"

// bootID names the running kernel. The name of the host changes with the network here.
func bootID() string {
	id, _ := syscall.Sysctl("kern.bootsessionuuid") // without one the name of the host stands for it
	return id
}
