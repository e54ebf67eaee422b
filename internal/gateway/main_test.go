package gateway_test

import (
	"context"
	"io"
	"net"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/writ-project/writ/internal/hostile"
)

// The variables that make the test binary a server over stdio.
const (
	envRelay = "WRIT_TEST_RELAY" // the address of a server in the test process
	envToy   = "WRIT_TEST_TOY"   // the toy server, in the child itself
)

// roles are what else a process of this test binary may be; each returns where it is not
// asked for.
var roles []func()

// TestMain lets the test binary be the child processes the gateway starts.
func TestMain(m *testing.M) {
	hostile.RunIfAsked()
	for _, role := range roles {
		role()
	}
	if addr := os.Getenv(envRelay); addr != "" {
		os.Exit(relay(addr))
	}
	if os.Getenv(envToy) != "" {
		if err := newToy().server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// relay copies standard input and output to and from a server that lives in
// the test process, so that a test sees what a child over stdio was sent.
func relay(addr string) int {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 1
	}
	go func() {
		io.Copy(c, os.Stdin)
		c.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(os.Stdout, c)
	return 0
}

// overStdio serves every process started with the returned command and
// environment with serve, in this process.
func overStdio(tb testing.TB, serve func(conn net.Conn)) (command []string, env map[string]string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	tb.Cleanup(func() { l.Close(); <-done })
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return []string{exe}, map[string]string{envRelay: l.Addr().String()}
}
