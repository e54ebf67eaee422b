// Command hostile is the misbehaving MCP server of package hostile on stdio, or
// with -http on a loopback address, for trying a client by hand.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/writ-project/writ/internal/hostile"
)

func main() {
	useHTTP := flag.Bool("http", false, "serve Streamable HTTP on a free loopback port")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: hostile [-http] MODE")
		os.Exit(64)
	}
	if !*useHTTP {
		os.Exit(hostile.Run(flag.Arg(0), os.Stdin, os.Stdout))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(74)
	}
	fmt.Println("http://" + l.Addr().String() + "/")
	srv := &http.Server{Handler: hostile.Handler(flag.Arg(0)), ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintln(os.Stderr, srv.Serve(l))
	os.Exit(74)
}
