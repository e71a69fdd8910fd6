package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// scopeFile prints which kinds have a namespace. The table of kyaml is private: its keys are read from the source, and its
// values asked for.
func scopeFile(from module) (string, error) {
	listed, err := scopeKeys(filepath.Join(from.dir, "openapi/openapi.go"))
	if err != nil {
		return "", err
	}
	// With the whole OpenAPI in memory nothing more may be known than the table says: else an answer depended on what was
	// asked before.
	for _, root := range roots() {
		if _, known := openapi.IsNamespaceScoped(root.TypeMeta); known && !slices.Contains(listed, root.TypeMeta) {
			return "", fmt.Errorf("the OpenAPI knows the scope of %v, the table doesn't", root.TypeMeta)
		}
	}
	slices.SortFunc(listed, compare)
	var out strings.Builder
	out.WriteString(header("The scopes of the kinds of Kubernetes.", from))
	out.WriteString("/// apiVersion, kind, and whether its objects are in a namespace; sorted.\n")
	out.WriteString("pub(super) static SCOPES: &[(&str, &str, bool)] = &[\n")
	for _, key := range listed {
		namespaced, known := openapi.IsNamespaceScoped(key)
		if !known {
			return "", fmt.Errorf("the scope of %v is unknown", key)
		}
		fmt.Fprintf(&out, "    (%q, %q, %t),\n", key.APIVersion, key.Kind, namespaced)
	}
	out.WriteString("];\n")
	return out.String(), nil
}

func compare(a, b yaml.TypeMeta) int {
	if order := strings.Compare(a.APIVersion, b.APIVersion); order != 0 {
		return order
	}
	return strings.Compare(a.Kind, b.Kind)
}

// scopeKeys reads the keys of the literal of precomputedIsNamespaceScoped.
func scopeKeys(path string) ([]yaml.TypeMeta, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	var keys []yaml.TypeMeta
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "precomputedIsNamespaceScoped" || len(spec.Values) != 1 {
			return true
		}
		table, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok {
			return false
		}
		for _, row := range table.Elts {
			var key yaml.TypeMeta
			for _, part := range row.(*ast.KeyValueExpr).Key.(*ast.CompositeLit).Elts {
				pair := part.(*ast.KeyValueExpr)
				text, _ := strconv.Unquote(pair.Value.(*ast.BasicLit).Value)
				switch pair.Key.(*ast.Ident).Name {
				case "APIVersion":
					key.APIVersion = text
				case "Kind":
					key.Kind = text
				}
			}
			keys = append(keys, key)
		}
		return false
	})
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no precomputedIsNamespaceScoped", path)
	}
	return keys, nil
}
