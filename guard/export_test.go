package guard

import (
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/statedir"
)

// OpenOver is Open over a store of the test's own.
func OpenOver(store gateway.Store, dir string, policy []byte, tools []Tool) (*Guard, error) {
	p, defs, err := join(policy, tools)
	if err != nil {
		return nil, err
	}
	return start(store, gateway.Options{Policy: p, Tools: defs, OwnPaths: statedir.Own(dir)})
}
