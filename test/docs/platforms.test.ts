import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Setup, setups } from '../platforms/setups.ts'

const page = new URL('../../docs/platforms.md', import.meta.url)
const table = /(?<=<!-- setups: .* -->\n).*?(?=<!-- end of setups -->)/s

const rowOf = ({ platform, inbox, ack, nothingLost, handledOnce, order, test }: Setup) =>
  `| ${platform} | \`${inbox}\` | \`${ack}\` | ${nothingLost} | ${handledOnce} | ${order} | \`test/${test}\` |`

test('The table of platforms holds what the tests prove', () => {
  const head =
    '| Platform | Inbox | `ack` | Nothing lost | Handled once | Order per media item | Test |\n|---|---|---|---|---|---|---|'
  const generated = `\n${[head, ...Object.values(setups).map(rowOf)].join('\n')}\n\n`
  const text = readFileSync(page, 'utf8')
  if (process.env['UPDATE'])
    writeFileSync(
      page,
      text.replace(table, () => generated),
    )
  expect(table.exec(readFileSync(page, 'utf8'))?.[0]).toBe(generated)
})

test.each(Object.entries<Setup>(setups))('the setup %s is proved by the test that the table names', (name, setup) => {
  const source = readFileSync(new URL(`../${setup.test}`, import.meta.url), 'utf8')
  expect(source).toMatch(new RegExp(`prove(Platform|Example)\\('${name}'`))
})
