import { rm } from 'node:fs/promises'
import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
// In the project, so that the bundles find their packages.
const folder = `${root}node_modules/.cache/bench-variants`

/** A script that is bundled with some modules replaced. */
export interface Variant {
  readonly name: string
  /** The path of each replaced module, and of its replacement, both from the root of the project. */
  readonly replace: Readonly<Record<string, string>>
}

/** Bundles a script once for each variant. Resolves with the bundles. */
export async function bundleVariants<Name extends string>(
  script: string,
  variants: readonly (Variant & { readonly name: Name })[],
): Promise<Record<Name, URL>> {
  const bundled = variants.map(async ({ name, replace }) => {
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
      plugins: [replacing(replace)],
    })
    return [name, pathToFileURL(outfile)] as const
  })
  return Object.fromEntries(await Promise.all(bundled)) as Record<Name, URL>
}

export const removeVariants = () => rm(folder, { recursive: true, force: true })

function replacing(replacements: Variant['replace']): Plugin {
  return {
    name: 'replace',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const replacement = replacements[relative(root, path)]
        if (replacement === undefined) return undefined
        return { contents: `export * from ${JSON.stringify(root + replacement)}`, loader: 'ts', resolveDir: root }
      })
    },
  }
}
