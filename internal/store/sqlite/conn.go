package sqlite

import (
	"context"
	"database/sql/driver"
	"syscall"

	"modernc.org/sqlite"
)

const errNotDir = syscall.ENOTDIR

// dsn is a driver.Connector without the process-wide driver registry, whose
// name "sqlite" belongs to whoever links the library.
type dsn struct{ name string }

func (d *dsn) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := sqlite.NewConnector(d.name)
	if err != nil {
		return nil, err
	}
	return c.Connect(ctx)
}

func (d *dsn) Driver() driver.Driver { return &sqlite.Driver{} }
