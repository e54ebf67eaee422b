package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/writ-project/writ/internal/cli"
	"github.com/writ-project/writ/internal/store/sqlite"
)

// migration is what became of the database of a state directory.
type migration struct {
	File   string `json:"file"`
	Was    int    `json:"was"`
	Is     int    `json:"is"`
	Newest int    `json:"newest"` // that this program writes
}

func migrateCommand() *cobra.Command {
	var f flags
	var check bool
	c := f.take(&cobra.Command{
		Use: "migrate", Short: "Bring a state directory to the format of this version", Args: cli.NoArgs,
		Long: "Every command that writes does this when it opens a state directory of an earlier version.\n" +
			"Here it is done when you say, while no gateway runs, and tells what was done. An earlier\n" +
			"version opens it no more, so `writ audit export -o FILE` goes first where you may go back.\n" +
			"Records stay as they were written, in their own versions, because they are signed; this\n" +
			"version reads them (docs/formats.md).",
		RunE: func(c *cobra.Command, _ []string) error {
			ctx := c.Context()
			dir, st, err := toExplain(ctx, f.state)
			if err != nil {
				return err
			}
			m := migration{File: sqlite.FileName}
			m.Was, m.Newest = st.Version()
			if err := st.Close(); err != nil {
				return unreadable(err)
			}
			if m.Is = m.Was; m.Was < m.Newest && !check {
				if all, err := gateways(dir); err != nil {
					return err
				} else if len(all) > 0 {
					return cli.Fail(cli.ExitData, "writ migrate", "a gateway runs on this state directory; end it, then run this again")
				}
				if st, err = openStore(ctx, dir); err != nil {
					return err
				}
				m.Is, _ = st.Version()
				if err := st.Close(); err != nil {
					return unreadable(err)
				}
			}
			return f.show(c, m, func(w io.Writer) {
				switch {
				case m.Is > m.Was:
					fmt.Fprintf(w, "%s: version %d became %d\n", m.File, m.Was, m.Is)
				case m.Is < m.Newest:
					fmt.Fprintf(w, "%s: version %d; writ migrate makes it %d\n", m.File, m.Is, m.Newest)
				default:
					fmt.Fprintf(w, "%s: version %d, which is this program's: nothing to do\n", m.File, m.Is)
				}
			})
		},
	}, "state", "json")
	c.Flags().BoolVar(&check, "check", false, "only say what would be done")
	return c
}
