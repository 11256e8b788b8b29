import manifest from './package.json' with { type: 'json' }

/** The source files that a part of package.json names by what is built from them. */
export const sourcesIn = (part: unknown): readonly string[] =>
  Array.from(JSON.stringify(part).matchAll(/"\.\/dist\/([^"]+)\.js"/g), ([, module]) => `${module}.ts`)

/** The entries of the package: the name that users import, and its source. */
export const entries = Object.entries(manifest.exports).flatMap(([subpath, files]) =>
  sourcesIn(files).map((source) => ({ name: subpath.replace('.', manifest.name), source })),
)
