import { expect, test } from 'vitest'
import { finish } from '../cli/program.ts'
import { pages, shellLines } from './pages.ts'

const program = 'npx media-webhooks '
const groups = ['keys', 'webhooks']

const commandLines = pages.flatMap((page) =>
  shellLines(page)
    .filter((line) => line.startsWith(program))
    .map((line) => [page.path, line.slice(program.length)] as const),
)

test.each(commandLines)('%s shows a command that exists, with flags that it knows: %s', async (_, line) => {
  const words = line.split(' ')
  const command = words.slice(0, groups.includes(words[0] as string) ? 2 : 1)
  const { code, output } = await finish([...command, '--help'])
  expect(code).toBe(0)
  expect(output).toContain(`media-webhooks ${command.join(' ')}`)
  for (const [flag] of line.matchAll(/--[a-z-]+/g)) expect(output).toContain(`  ${flag}`)
})
