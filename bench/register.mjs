// Runs the benchmark's own TypeScript without tsconfig.json, whose paths would turn the built package back to sources.
import { register } from 'tsx/esm/api'

register({ tsconfig: false })
