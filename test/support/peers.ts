import { readFileSync } from 'node:fs'
import manifest from '../../package.json' with { type: 'json' }

/** An optional peer of the package, with the oldest and the newest version that are tested. */
export interface Peer {
  readonly name: string
  /** As in `package.json`. */
  readonly range: string
  /** The version that the range begins with. */
  readonly oldest: string
  /** The version that is installed in this repository. */
  readonly newest: string
}

/** The optional peers, in the order of `package.json`. */
export const peers: readonly Peer[] = Object.entries(manifest.peerDependencies).map(([name, range]) => {
  const oldest = /^\^([\d.]+)/.exec(range)?.[1]
  if (oldest === undefined) throw new Error(`the range of ${name} does not begin with a version: ${range}`)
  return { name, range, oldest, newest: installedVersion(name) }
})

/** The version of a package in `node_modules`, which may be an alias. */
export function installedVersion(name: string): string {
  return JSON.parse(readFileSync(new URL(`../../node_modules/${name}/package.json`, import.meta.url), 'utf8')).version
}
