import { expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { peers } from '../support/peers.ts'
import { pageOf } from './pages.ts'

test('the table of peers has their ranges in package.json, and the oldest and the newest version that are tested', () => {
  const rows = Array.from(pageOf('versions').text.matchAll(/^\| `([^`]+)` \| (\^.+?) \| (.+?) \| (.+?) \|$/gm), (row) =>
    row.slice(1),
  )
  expect(rows).toEqual(
    peers.map(({ name, range, oldest, newest }) => [name, range.replaceAll('||', 'or'), oldest, newest]),
  )
})

test('the contracts run the oldest version of each peer, under an alias', () => {
  const aliases = Object.values(manifest.devDependencies).filter((version) => version.startsWith('npm:'))
  // OpenTelemetry has no contract: the installed package is tested with it.
  const contracted = peers.filter(({ name }) => name !== '@opentelemetry/api')
  expect(aliases.sort()).toEqual(contracted.map(({ name, oldest }) => `npm:${name}@${oldest}`).sort())
})
