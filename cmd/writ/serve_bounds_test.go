package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestD01ServeBoundsConnections: the bound on connections holds of the server that writ serve
// runs, with all that watches them there (D01).
func TestD01ServeBoundsConnections(t *testing.T) {
	const bound, more = 1024, 8
	url, _ := serving(t, "--state", ownState(t))
	at := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	var held []net.Conn
	for i := range bound + more {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", at)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("connection %d: %v %v", i, r, err)
		}
		held = append(held, c)
	}
	// Which were idle longest is the server's to say: a loaded machine takes note of them in
	// another order.
	ended := make(chan error, len(held))
	for _, c := range held {
		go func() {
			_, err := io.Copy(io.Discard, c)
			ended <- err
		}()
	}
	for i := range more {
		if err := <-ended; err != nil {
			t.Fatalf("%d of %d connections were given up, want %d: %v", i, len(held), more, err)
		}
	}
}
