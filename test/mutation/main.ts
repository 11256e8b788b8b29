import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'
import { core, type GroupName, groups } from './groups.ts'

// Mutates the source, and runs the tests that have to notice: all groups, or those that are named.
//   npm run mutation -- core sqlite --concurrency 2 --mutate src/verify/secrets.ts
// With --dry-run, it runs the tests without mutants, as each run does first.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    concurrency: { type: 'string' },
    mutate: { type: 'string', multiple: true },
    static: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
  },
})

const names = Object.keys(groups) as GroupName[]
const wanted = positionals.flatMap((name) => (name === 'core' ? core : [name as GroupName]))
for (const name of wanted) {
  if (!names.includes(name)) throw new Error(`no group is named ${name}: core, ${names.join(', ')}`)
}

for (const name of wanted.length > 0 ? wanted : names) {
  // Read by vitest.config.ts, in the processes that Stryker starts.
  process.env['MUTATION_GROUP'] = name
  await new Stryker({
    mutate: values.mutate ?? [...groups[name].mutate],
    incrementalFile: `.mutation/${name}.json`,
    jsonReporter: { fileName: `.mutation/${name}-report.json` },
    ...(values['dry-run'] && { dryRunOnly: true }),
    ...(values.static && { ignoreStatic: false }),
    ...(values.concurrency !== undefined && { concurrency: Number(values.concurrency) }),
  }).runMutationTest()
}
