// Command definitions asks an MCP server for its tools and writes what a contract of
// contracts/ is made of: tools.json, the definitions without their sentences and with
// their pins, and these pins into the contract.yaml beside it, where there is one.
//
//	go run ./internal/definitions -o contracts/NAME -of @scope/server -version 1.2.3 -- npx -y @scope/server@1.2.3
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/writ-project/writ/contracts"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
)

func main() {
	out := flag.String("o", "", "the contract's folder")
	of := flag.String("of", "", "the package that the command starts")
	version := flag.String("version", "", "and its version")
	env := flag.String("env", "", "NAME=value,NAME=value: what the server is started with besides PATH and HOME")
	flag.Parse()
	if err := write(*out, *of, *version, *env, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "definitions:", err)
		os.Exit(1)
	}
}

func write(dir, of, version, env string, command []string) error {
	cfg := upstream.Config{Name: contracts.Self, Command: command, Env: map[string]string{},
		// As the gateway declares them: a server can list by them.
		ClientCapabilities: []byte(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)}
	for e := range strings.SplitSeq(env, ",") {
		if name, value, ok := strings.Cut(e, "="); ok {
			cfg.Env[name] = value
		}
	}
	s := upstream.New(cfg, upstream.Callbacks{}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Start(ctx); err != nil {
		return err
	}
	defer s.Close()
	listing, err := s.List(ctx, "tools/list", "tools")
	if err != nil {
		return fmt.Errorf("%w\n%s", err, s.Stderr())
	}
	name := func(raw []byte) string {
		n, _ := strictjson.Text(strictjson.Get(raw, "name"))
		return n
	}
	slices.SortFunc(listing, func(a, b []byte) int { return strings.Compare(name(a), name(b)) })
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"of\":%s,\"version\":%s,\"tools\":[\n", strictjson.Quote(of), strictjson.Quote(version))
	pins := map[string]string{}
	for i, raw := range listing {
		pin := gate.PinOf(contracts.Self, raw)
		pins[contracts.Self+"/"+name(raw)] = pin
		if i > 0 {
			out.WriteString(",\n")
		}
		fmt.Fprintf(&out, "{\"pin\":%q,\"definition\":%s}", pin, contracts.Skeleton(raw))
	}
	out.WriteString("\n]}\n")
	file := filepath.Join(dir, "contract.yaml")
	text, err := os.ReadFile(file)
	if err == nil {
		p, faults := policy.Parse(file, text)
		if len(faults) > 0 {
			return errors.New(faults[0].String())
		}
		for tool := range p.Contracts {
			if text, err = policy.SetPin(text, tool, pins[tool]); err != nil {
				return fmt.Errorf("%s: %w", tool, err)
			}
		}
		if err = os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "tools.json"), out.Bytes(), 0o644)
}
