"""Looking into models: what they attend to, which trees and graphs they found, and how good those are."""
