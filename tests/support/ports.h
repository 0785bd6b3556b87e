// Free ports of this machine for the servers of a test.
#ifndef RUNNEL_TESTS_SUPPORT_PORTS_H_
#define RUNNEL_TESTS_SUPPORT_PORTS_H_

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

// A port that only a server which names it gets until this process ends; -1 if none is free. It
// stays bound here without listening, so the system gives it to no other program, and a server that
// sets SO_REUSEADDR may listen there nevertheless.
static inline int free_port(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
      bind(fd, (struct sockaddr*)&at, sizeof at) || getsockname(fd, (struct sockaddr*)&at, &size))
    return -1;
  return ntohs(at.sin_port);
}

// |count| addresses with such ports.
static inline void free_addresses(char (*addresses)[64], int count) {
  for (int i = 0; i < count; ++i)
    snprintf(addresses[i], sizeof addresses[i], "127.0.0.1:%d", free_port());
}

#endif  // RUNNEL_TESTS_SUPPORT_PORTS_H_
