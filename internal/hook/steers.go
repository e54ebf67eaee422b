package hook

import (
	"path"
	"slices"
	"strings"

	"github.com/writ-project/writ/internal/text"
)

// Steers reports whether a file of that name says which programs run: what builds, tests,
// installs, starts or lints reads it unasked, and so does the agent's next harmless
// command. That it was read is no reason to change it. So is what lies in a repository's own
// directory, repo.git. Names that begin with a dot, and
// those of agents and continuous integration, are the gate's (R34).
func Steers(file string) bool {
	file = strings.ToLower(strings.ReplaceAll(file, `\`, "/"))
	name := path.Base(file)
	return slices.Contains(steering, name) || steeringForm().MatchString(name) || strings.Contains(file, ".git/")
}

// steering are such files by name.
var steering = strings.Fields(`
	makefile gnumakefile bsdmakefile cmakelists.txt cmakepresets.json meson.build build.ninja configure configure.ac justfile taskfile.yml taskfile.yaml
	rakefile gemfile gemfile.lock procfile vagrantfile tiltfile brewfile fastfile dangerfile guardfile podfile earthfile magefile.go
	package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock bunfig.toml deno.json deno.jsonc
	lerna.json nx.json turbo.json project.json rush.json angular.json wrangler.toml vercel.json netlify.toml serverless.yml
	lefthook.yml lefthook.yaml lefthook.toml lefthook.json pyproject.toml setup.py setup.cfg tox.ini noxfile.py conftest.py pytest.ini tasks.py fabfile.py
	sitecustomize.py usercustomize.py pipfile pipfile.lock poetry.lock uv.lock environment.yml dodo.py sconstruct sconscript wscript
	go.mod go.sum go.work cargo.toml cargo.lock build.rs rust-toolchain rust-toolchain.toml gradlew gradlew.bat mvnw mvnw.cmd pom.xml build.xml build.sbt
	gradle.properties gradle-wrapper.properties project.clj deps.edn mix.exs rebar.config composer.json composer.lock package.swift dub.json
	cpanfile makefile.pl build.pl build.zig stack.yaml cabal.project dune dune-project build workspace build.bazel workspace.bazel module.bazel buck
	dockerfile containerfile docker-compose.yml docker-compose.yaml compose.yml compose.yaml skaffold.yaml fly.toml flake.nix flake.lock shell.nix default.nix devbox.json
	devenv.nix mise.toml cdk.json firebase.json cypress.json nightwatch.json knexfile.js knexfile.ts ember-cli-build.js setuptests.js setuptests.ts
	phpunit.xml phpunit.xml.dist phpstan.neon artisan config.ru snakefile build.sc setup.hs premake5.lua xmake.lua conanfile.py vcpkg.json cartfile nuget.config
	conf.py mkdocs.yml mkdocs.yaml mypy.ini pylintrc ansible.cfg hatch_build.py hatch.toml pdm.toml pixi.toml pyvenv.cfg buf.gen.yaml dvc.yaml helmfile.yaml
	docker-bake.hcl project.pbxproj
	applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-rewrite post-checkout
	post-merge pre-push pre-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc fsmonitor-watchman post-index-change`)

// steeringForm are such files by the form of their names.
var steeringForm = text.Pattern(`^(?:` +
	`.+\.(?:mk|mak|cmake|rake|sbt|pth|code-workspace|service|timer|gradle|gradle\.kts|bzl|bazel|gemspec|podspec|cabal|csproj|fsproj|vbproj|vcxproj|sln|props|targets|dockerfile)` +
	`|(?:dockerfile|containerfile|makefile|procfile|(?:docker-)?compose)\..+` +
	`|.+\.(?:config|conf|setup|workspace)\.(?:[a-z]+\.)?(?:[cm]?[jt]sx?|json)` + // vite.config.ts, webpack.config.babel.js
	`|(?:gulpfile|gruntfile|jakefile)(?:\.[a-z]+)?\.(?:[cm]?[jt]s|coffee)` +
	`|(?:requirements|constraints).*\.(?:txt|in)` +
	`)$`)
