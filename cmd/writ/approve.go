package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/approval"
	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/gateway/localdoor"
)

func approveCommand() *cobra.Command {
	var f flags
	var yes, no bool
	c := f.take(&cobra.Command{
		Use: "approve [ID]", Short: "List the calls that wait for a person, or answer one",
		Long: "List the calls that wait for a person, or answer one: what it would do, which of its values\n" +
			"nothing vouches for, and where each of them was seen. A yes is good for that very call,\n" +
			"once, for ten minutes. Answer from a terminal of your own: a process that the agent or a\n" +
			"server started is not heard. writ watch shows each question as it comes.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 || yes && no || (yes || no) && len(args) == 0 {
				return cli.Fail(cli.ExitUsage, "writ approve --help", "at most one id, and with it --yes or --no")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			waiting, err := f.waiting(c.Context())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				shown := []approval.Shown{}
				for _, w := range waiting {
					shown = append(shown, w.Shown)
				}
				return f.show(c, shown, func(w io.Writer) {
					for _, q := range shown {
						q.Print(w)
						fmt.Fprintf(w, "  try: writ approve %s\n", q.ID)
					}
					if len(shown) == 0 {
						fmt.Fprintln(w, "nothing waits for an answer")
					}
				})
			}
			for _, w := range waiting {
				if !strings.EqualFold(w.ID, args[0]) {
					continue
				}
				if !yes && !no {
					w.Print(c.OutOrStdout())
					if yes, err = readAnswer(bufio.NewReader(c.InOrStdin()), c.OutOrStdout(), &w.Shown); err != nil {
						return err
					}
				}
				return w.answer(c.Context(), c.OutOrStdout(), yes)
			}
			return cli.Fail(cli.ExitData, "writ approve", "no call waits under that id, or not any more")
		},
	}, "state", "json")
	c.Flags().BoolVar(&yes, "yes", false, "allow it, this once")
	c.Flags().BoolVar(&no, "no", false, "refuse it")
	return c
}

func watchCommand() *cobra.Command {
	var f flags
	return f.take(&cobra.Command{
		Use: "watch", Short: "Show each call that waits for a person, and answer it", Args: cli.NoArgs,
		Long: "Show each call that waits for a person as it comes, and answer it with y or n. While this\n" +
			"runs such calls are held for 45 seconds; where nobody watches they are refused.",
		RunE: func(c *cobra.Command, _ []string) error { return f.watch(c) },
	}, "state")
}

// waiting is a question with the gateway that holds it.
type waiting struct {
	approval.Shown
	client *http.Client
}

const approvalsURL = "https://localhost/approvals"

// doors are the local doors of the gateways that run on the state directory.
func (f *flags) doors() (out []*http.Client, err error) {
	state, err := stateDir(f.state)
	if err != nil {
		return nil, err
	}
	all, err := gateways(state)
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		if c, err := g.Client(0); err == nil {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, cli.Fail(cli.ExitIO, "writ serve", "no gateway runs on this state directory")
	}
	return out, nil
}

// waiting lists what waits in all gateways.
func (f *flags) waiting(ctx context.Context) (out []waiting, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	doors, err := f.doors()
	if err != nil {
		return nil, err
	}
	for _, c := range doors {
		err := questions(ctx, c, approvalsURL, func(qs []approval.Shown) {
			for _, q := range qs {
				out = append(out, waiting{q, c})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// questions hands on each list of open questions that a gateway sends.
func questions(ctx context.Context, c *http.Client, url string, each func([]approval.Shown)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return cli.Fail(cli.ExitIO, "writ serve", "the gateway does not answer")
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var qs []approval.Shown
		if err != nil || json.Unmarshal(line, &qs) != nil {
			return cli.Fail(cli.ExitIO, "", "the gateway's answer broke off")
		}
		each(qs)
	}
}

// answer answers a question, and says what became of it.
func (w *waiting) answer(ctx context.Context, out io.Writer, yes bool) error {
	b, _ := json.Marshal(map[string]bool{"yes": yes})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, approvalsURL+"/"+w.ID, bytes.NewReader(b))
	if err != nil {
		return err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return cli.Fail(cli.ExitIO, "writ serve", "the gateway does not answer")
	}
	defer resp.Body.Close()
	var r approval.Reply
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&r) != nil {
		return cli.Fail(cli.ExitIO, "", "the gateway's answer cannot be read")
	}
	word := map[bool]string{true: "yes", false: "no"}
	switch resp.StatusCode {
	case http.StatusOK:
		fmt.Fprintf(out, "%s: on record\n", word[yes])
		return nil
	case http.StatusConflict:
		return cli.Fail(cli.ExitData, "writ approve", "%s answered first, with %s", cli.OneLine(r.By, 80), word[r.Yes])
	case http.StatusForbidden:
		return cli.Fail(cli.ExitRefused, "the same in a terminal window of your own", "the answer is not heard: %s", cli.OneLine(r.Error, 200))
	}
	return cli.Fail(cli.ExitData, "writ approve", "%s", cli.OneLine(r.Error, 200))
}

// readAnswer reads y or n; anything else is no answer, and a yes to a call that was
// not shown whole is none before its bytes were.
func readAnswer(in *bufio.Reader, out io.Writer, q *approval.Shown) (yes bool, err error) {
	_, whole := q.Whole()
	for range 5 {
		fmt.Fprintf(out, "[y] this once   [n] no   [b] exact bytes > ")
		line, err := in.ReadString('\n')
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			if whole {
				return true, nil
			}
			fmt.Fprintf(out, "the arguments are too long to stand above: look at them first, with b\n")
		case "n", "no":
			return false, nil
		case "b":
			fmt.Fprintf(out, "%s\n", cli.Printable(q.Arguments))
			whole = true
		}
		if err != nil {
			break
		}
	}
	return false, cli.Fail(cli.ExitUsage, "writ approve "+q.ID+" --no", "neither yes nor no: the question stays open")
}

// watch shows questions as they come and answers them.
func (f *flags) watch(c *cobra.Command) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	doors, err := f.doors()
	if err != nil {
		return err
	}
	news, ended := make(chan waiting), make(chan error, len(doors))
	for _, door := range doors {
		go func() {
			seen := map[string]bool{}
			ended <- questions(ctx, door, approvalsURL+"?watch", func(qs []approval.Shown) {
				for _, q := range qs {
					if seen[q.ID] {
						continue
					}
					seen[q.ID] = true
					select {
					case news <- waiting{q, door}:
					case <-ctx.Done():
					}
				}
			})
		}()
	}
	out, in := c.OutOrStdout(), bufio.NewReader(c.InOrStdin())
	fmt.Fprintln(out, "watching: calls that only a person can let pass are shown here and held for 45 s")
	left := len(doors)
	for {
		select {
		case <-c.Context().Done():
			return nil
		case err := <-ended:
			if left--; left == 0 {
				return err
			}
		case w := <-news:
			w.Print(out)
			yes, err := readAnswer(in, out, &w.Shown)
			if err == nil {
				err = w.answer(ctx, out, yes)
			}
			if err != nil {
				fmt.Fprintf(out, "%s\n", cli.OneLine(err.Error(), 300))
			}
		}
	}
}

// answering says who answers over the local door: the account's own person, at a
// terminal that neither the client, this gateway nor a server of it has started.
func answering(from ...int) func(*http.Request) (string, writ.Label, error) {
	return func(r *http.Request) (string, writ.Label, error) {
		if err := localdoor.Apart(r.Context(), from...); err != nil {
			return "", 0, err
		}
		return account(), writ.User, nil
	}
}
