// Runs TypeScript without tsconfig.json, whose paths would replace the built package with the sources.
import { register } from 'tsx/esm/api'

register({ tsconfig: false })
