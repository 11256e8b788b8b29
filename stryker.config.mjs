/** The options that all groups of `npm run mutation` share; test/mutation/main.ts adds those of each group. */
export default {
  testRunner: 'vitest',
  // The test files are those of the group, so Vitest need not look for related ones.
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
  plugins: ['@stryker-mutator/vitest-runner', './test/mutation/ignore-texts.mjs'],
  ignorers: ['texts'],
  coverageAnalysis: 'perTest',
  // Constants, which each module computes once: a mutant of them runs every test. `--static` mutates them too.
  ignoreStatic: true,
  incremental: true,
  concurrency: 1,
  // The tests of an inbox take minutes on a busy machine.
  dryRunTimeoutMinutes: 30,
  thresholds: { high: 95, low: 90, break: 90 },
  reporters: ['clear-text', 'json'],
  clearTextReporter: { allowEmojis: false, logTests: false, reportTests: false, skipFull: true },
  tempDirName: '.mutation',
  ignorePatterns: ['/.ci', '/bench', '/demo', '/dist', '/docs', '/examples'],
  // The log of a dry run has the number of tests, and their time.
  logLevel: process.argv.includes('--dry-run') ? 'info' : 'warn',
  warnings: { slow: false },
}
