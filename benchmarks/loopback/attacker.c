/* The yardstick of the drive benchmark: an open-model attacker with nothing in the way, one thread and one epoll.

   attacker PORT COUNT RATE   sends COUNT POSTs to 127.0.0.1:PORT at RATE a second, or all at once when RATE is 0, on
                              connections that are open before; prints how late each one left, in microseconds. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static const char FORM[] =
    "POST /apis/v2beta1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    "Content-Length: %d\r\n\r\n{\"display_name\":\"%0280d\"}";

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void give_up(const char *what) {
    perror(what);
    exit(1);
}

static int connected(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int s = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof to)) give_up("connect");
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return s;
}

static void watch(int epoll, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event)) give_up("epoll_ctl");
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: attacker PORT COUNT RATE\n"), 2;
    int port = atoi(argv[1]), count = atoi(argv[2]), rate = atoi(argv[3]);
    int open = rate && rate < count ? rate : count; /* an answer takes less than a second */
    char request[1024];
    int length = snprintf(request, sizeof request, FORM, 280 + 19, 0);

    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0), idle_count = 0;
    int *idle = malloc(open * sizeof *idle);
    int64_t *late = malloc(count * sizeof *late);
    watch(epoll, timer);
    while (idle_count < open) watch(epoll, idle[idle_count++] = connected(port));

    int64_t begin = now_ns() + 300000000LL; /* the server has accepted them all by then */
    for (int sent = 0, answered = 0; answered < count;) {
        int64_t due;
        while (due = begin + (rate ? sent * 1000000000LL / rate : 0), sent < count && now_ns() >= due) {
            if (!idle_count) return fprintf(stderr, "more than %d requests in flight\n", open), 1;
            late[sent++] = now_ns() - due;
            if (send(idle[--idle_count], request, length, 0) != length) give_up("send");
        }
        struct itimerspec at = {.it_value = {due / 1000000000LL, due % 1000000000LL}};
        if (sent == count) at.it_value = (struct timespec){0, 0};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
        struct epoll_event ready[64];
        int n = epoll_wait(epoll, ready, 64, -1);
        for (int k = 0; k < n; k++) {
            char answer[4096]; /* the server writes an answer at once: it comes in one piece */
            int got = read(ready[k].data.fd, answer, sizeof answer);
            if (got <= 0) give_up("read");
            if (ready[k].data.fd == timer) continue;
            idle[idle_count++] = ready[k].data.fd;
            answered++;
        }
    }
    for (int k = 0; k < count; k++) printf("%lld\n", (long long)late[k] / 1000);
    return 0;
}
