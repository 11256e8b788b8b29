import { rm } from 'node:fs/promises'
import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
// Inside the project, so that the bundles find their packages.
const folder = `${root}node_modules/.cache/bench-variants`

/** A script bundled from the sources with some of their modules exchanged. */
export interface Variant {
  readonly name: string
  /** The module that stands in for another, by the path of that other; both from the project's root. */
  readonly exchange: Readonly<Record<string, string>>
}

/** Bundles the script in all its variants. */
export async function bundleVariants<Name extends string>(
  script: string,
  variants: readonly (Variant & { readonly name: Name })[],
): Promise<Record<Name, URL>> {
  const bundled = variants.map(async ({ name, exchange }) => {
    const outfile = `${folder}/${name}.mjs`
    await build({
      entryPoints: [root + script],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      alias: { '#crypto': `${root}src/verify/crypto-node.ts` },
      plugins: [exchanging(exchange)],
    })
    return [name, pathToFileURL(outfile)] as const
  })
  return Object.fromEntries(await Promise.all(bundled)) as Record<Name, URL>
}

export const removeVariants = () => rm(folder, { recursive: true, force: true })

function exchanging(exchange: Variant['exchange']): Plugin {
  return {
    name: 'exchange',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const replacement = exchange[relative(root, path)]
        if (replacement === undefined) return undefined
        return { contents: `export * from ${JSON.stringify(root + replacement)}`, loader: 'ts', resolveDir: root }
      })
    },
  }
}
