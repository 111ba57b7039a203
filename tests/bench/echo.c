/* The floor that every figure is compared with: each datagram goes back as a response, by one
 * recvfrom and one sendto.  echo PORT: serves 127.0.0.1. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define RECEIVE_BUFFER (4 * 1024 * 1024)

int main(int argc, char **argv)
{
    unsigned char datagram[4096];
    struct sockaddr_in here = {.sin_family = AF_INET}, peer;
    int room = RECEIVE_BUFFER, s = socket(AF_INET, SOCK_DGRAM, 0);

    here.sin_port = htons(argc == 2 ? atoi(argv[1]) : 0);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(s, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (bind(s, (struct sockaddr *)&here, sizeof here) != 0) {
        perror("echo: bind");
        return 1;
    }
    for (;;) {
        socklen_t size = sizeof peer;
        ssize_t got = recvfrom(s, datagram, sizeof datagram, 0, (struct sockaddr *)&peer, &size);
        if (got < 12)
            continue;
        datagram[2] |= 0x80; /* QR */
        sendto(s, datagram, got, 0, (struct sockaddr *)&peer, size);
    }
}
